/* Gives a fuzz target every file of some folders, in the order of their names, as TAP
 * lines: what fuzzing once found stays found, on any compiler. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <dirent.h>

static void replay(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    require(file && fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc((size_t)size + 1);
    require(bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    fprintf(stderr, "# %s\n", path); /* the one that aborts is the last line */
    LLVMFuzzerTestOneInput(bytes, (size_t)size);
    free(bytes);
}

int main(int argc, char **argv)
{
    printf("1..%d\n", argc - 1);
    for (int i = 1; i < argc; i++) {
        struct dirent **entries;
        int count = scandir(argv[i], &entries, NULL, alphasort), replayed = 0;
        for (int j = 0; j < count; j++) {
            if (entries[j]->d_name[0] != '.') {
                replay(argv[i], entries[j]->d_name);
                replayed++;
            }
            free(entries[j]);
        }
        if (count >= 0)
            free(entries);
        printf("%s %d - %s: %d inputs end well\n", replayed > 0 ? "ok" : "not ok", i, argv[i],
               replayed);
    }
    return 0;
}
