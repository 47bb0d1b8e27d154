/*
 * nccl_load.cu - finding NCCL: the file that was asked for, the one that GPUBENCH_NCCL
 * names, libnccl.so.2 where the loader looks.
 */
#include "nccl_api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace {

char wanted[1024], reason[1400], text[64];

struct entry {
    const char *name;
    size_t offset;
};

#define NCCL_ENTRY(name, parameters) {"nccl" #name, offsetof(nccl_api, name)},
const entry entries[] = {NCCL_FUNCTIONS(NCCL_ENTRY){"ncclGetErrorString",
                                                    offsetof(nccl_api, GetErrorString)}};

/* Up to 2.8 a version is major * 1000 + minor * 100 + patch, later with ten times that for
 * the major and none for the minor: 2804 is 2.8.4, 20906 is 2.9.6. */
void describe(int version)
{
    int major = version < 10000 ? version / 1000 : version / 10000;
    int rest = version < 10000 ? version % 1000 : version % 10000;
    snprintf(text, sizeof text, "NCCL %d.%d.%d", major, rest / 100, rest % 100);
}

const char *path_of(void *function)
{
    Dl_info info;
    return dladdr(function, &info) && info.dli_fname ? info.dli_fname : "?";
}

/* The version is asked first, before anything that an old library may lack. */
const char *find_functions(void *library, nccl_api *api)
{
    int version = 0;
    *reinterpret_cast<void **>(&api->GetVersion) = dlsym(library, "ncclGetVersion");
    if (!api->GetVersion || api->GetVersion(&version) != NCCL_SUCCESS)
        return "the library does not tell its version";
    describe(version);
    const char *path = path_of(reinterpret_cast<void *>(api->GetVersion));
    if (version < NCCL_OLDEST) {
        snprintf(reason, sizeof reason, "%s of %.900s is too old: 2.10 or later is needed", text,
                 path);
        return reason;
    }
    for (const entry &e : entries) {
        void *function = dlsym(library, e.name);
        if (!function) {
            snprintf(reason, sizeof reason, "%s of %.900s has no %s", text, path, e.name);
            return reason;
        }
        *reinterpret_cast<void **>(reinterpret_cast<char *>(api) + e.offset) = function;
    }
    return nullptr;
}

const char *load(nccl_api *api)
{
    const char *named = *wanted ? wanted : getenv("GPUBENCH_NCCL");
    void *library = dlopen(named && *named ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library) return find_functions(library, api);
    const char *error = dlerror();
    snprintf(reason, sizeof reason, "no NCCL (GPUBENCH_NCCL or --nccl names it): %.900s",
             error ? error : "?");
    return reason;
}

} // namespace

void nccl_use(const char *path)
{
    snprintf(wanted, sizeof wanted, "%s", path);
}

const nccl_api *nccl_load(const char **why, const char **version)
{
    static nccl_api api;
    static const char *failure = load(&api);
    *why = failure;
    *version = *text ? text : "no NCCL";
    return failure ? nullptr : &api;
}
