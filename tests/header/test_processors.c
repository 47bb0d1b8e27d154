/* The processors that the CPU backend runs on: their name, and who else is on them. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

/* ---- the processor's name ---- */

static void expect_name(const char *cpuinfo, const char *wanted)
{
    char name[256];
    FILE *file = fmemopen((void *)(uintptr_t)cpuinfo, strlen(cpuinfo), "r");
    assert_non_null(file);
    gpb_parse_cpu_name(file, name, sizeof name);
    fclose(file);
    assert_string_equal(name, wanted);
}

#define ARM_CORE(implementer, part)                                                     \
    "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd evtstrm crc32 cpuid\n"     \
    "CPU implementer\t: " implementer "\nCPU architecture: 8\nCPU variant\t: 0x3\n"     \
    "CPU part\t: " part "\nCPU revision\t: 1\n\n"

static void processors_have_names(void **state)
{
    (void)state;
    expect_name("processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) "
                "Platinum 8480C\ncpu MHz\t\t: 2000.0\nflags\t\t: fpu vme\n\n"
                "processor\t: 1\nmodel name\t: another\n", "Intel(R) Xeon(R) Platinum 8480C");
    expect_name(ARM_CORE("0x41", "0xd0c") ARM_CORE("0x41", "0xd0c"), "Arm Neoverse-N1");
    expect_name(ARM_CORE("0x41", "0xd40"), "Arm Neoverse-V1");
    expect_name(ARM_CORE("0x41", "0xd4f"), "Arm Neoverse-V2");
    expect_name(ARM_CORE("0x46", "0x001"), "Fujitsu A64FX");
    expect_name(ARM_CORE("0x41", "0xd99"), "ARM implementer 0x41 part 0xd99");
    expect_name(ARM_CORE("0x99", "0x001"), "ARM implementer 0x99 part 0x001");
    expect_name(ARM_CORE("0x41", "0xd05") ARM_CORE("0x41", "0xd0b") ARM_CORE("0x41", "0xd05"),
                "Arm Cortex-A55 + Arm Cortex-A76");
    /* One core's name may begin like another's: A78 is not there because A78AE is. */
    expect_name(ARM_CORE("0x41", "0xd42") ARM_CORE("0x41", "0xd41"),
                "Arm Cortex-A78AE + Arm Cortex-A78");
    /* 32-bit kernels call the architecture model name. */
    expect_name("processor\t: 0\nmodel name\t: ARMv7 Processor rev 3 (v7l)\n"
                "CPU implementer\t: 0x41\nCPU part\t: 0xd08\n\n", "Arm Cortex-A72");
    expect_name("processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\n"
                "uarch\t\t: sifive,u74-mc\n\n", "sifive,u74-mc");
    expect_name("processor\t: 0\nisa\t\t: rv64imafdch\n", "RISC-V rv64imafdch");
    expect_name("processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 2300MHz\n",
                "POWER9, altivec supported");
    expect_name("vendor_id       : IBM/S390\nprocessor 0: version = FF,  identification = 2733E8,"
                "  machine = 2964\nprocessor 1: version = FF,  identification = 2733E8,"
                "  machine = 2964\n", "s390 machine 2964");
    expect_name("nothing of that kind\n", "unknown CPU");
    expect_name("model name\t: no line end", "no line end");
}

/* The rest of a line that is longer than the buffer is no line of its own. */
static void a_long_line_is_one_line(void **state)
{
    char cpuinfo[4096];
    size_t length = (size_t)snprintf(cpuinfo, sizeof cpuinfo, "flags\t: ");
    (void)state;
    while (length < 511)
        cpuinfo[length++] = 'x';
    snprintf(cpuinfo + length, sizeof cpuinfo - length,
             "model name : wrong\nmodel name : right\n\n");
    expect_name(cpuinfo, "right");
}

/* ---- other programs ---- */

/* By hand: 1000 ticks, of which 400 idle and 50 waiting for a disk, 30 stolen, and of the
 * 520 that ran 120 were this process's. */
static void test_processors_line(void **state)
{
    gpb_pressure load;
    (void)state;
    memset(&load, 0, sizeof load);
    gpb_parse_processors("cpu  300 20 150 400 50 10 40 30 7 0\n", 120, &load);
    assert_true(load.total == 1000 && load.others == 400 && load.stolen == 30);
    gpb_parse_processors("intr 5\n", 0, &load);
    assert_true(load.total == 1000);
}

static const char *flags_for(double total, double others, double stolen, double throttled_us)
{
    static gpb_live live;
    gpb_pressure before, now;
    memset(&live, 0, sizeof live);
    memset(&before, 0, sizeof before);
    before.total = 500, before.others = 100, before.stolen = 10, before.throttled_us = 7;
    now = before;
    now.total += total, now.others += others, now.stolen += stolen;
    now.throttled_us += throttled_us;
    gpb_flag_pressure(&live, &before, &now);
    return live.flags;
}

static void test_load_is_flagged(void **state)
{
    gpb_live live;
    (void)state;
    assert_string_equal(flags_for(100, 9, 4, 0), "");
    assert_string_equal(flags_for(100, 11, 0, 0), "busy");
    assert_string_equal(flags_for(100, 0, 6, 0), "steal");
    assert_string_equal(flags_for(19, 19, 19, 0), ""); /* too short to tell */
    assert_string_equal(flags_for(100, 50, 50, 1), "busy steal throttle=quota");
    memset(&live, 0, sizeof live);
    gpb_flag_clock(&live, 0, 2400000); /* nobody says */
    gpb_flag_clock(&live, 2300000, 2400000);
    assert_string_equal(live.flags, "");
    gpb_flag_clock(&live, 1200000, 2400000);
    assert_string_equal(live.flags, "throttle=clock");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processors_have_names),
        cmocka_unit_test(a_long_line_is_one_line),
        cmocka_unit_test(test_processors_line),
        cmocka_unit_test(test_load_is_flagged)};
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("processors", tests, NULL, NULL));
}
