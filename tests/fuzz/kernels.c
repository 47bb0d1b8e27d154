/* Files of --kernels-csv: any bytes are read from a path, as both sides of a comparison, and
 * end with a report or with a message. */
#define _GNU_SOURCE
#include "../../compare/kernels.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[kernels_error_capacity] = "";
    struct memory_file file = memory_file_open(data, size);
    struct kernels kernels = {0};
    bool loaded = kernels_load(&kernels, 0, file.path, NULL, error);
    require(loaded == (error[0] == '\0'));
    require(kernels_load(&kernels, 1, file.path, NULL, error) == loaded);
    require(!loaded || kernels_common_cases(&kernels) == kernels.cases.count);
    if (loaded) {
        struct shown_report report;
        shown_report_open(&report);
        require(kernels_report(report.file, &kernels, 0));
        shown_report_close(&report, true);
    }
    kernels_free(&kernels);
    memory_file_close(&file);
    return 0;
}
