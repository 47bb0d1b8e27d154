#include "precise.h"

#include "number.h"

#include <float.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t exponent_bits = 0x7ff0000000000000u;
static const uint64_t mantissa_bits = 0x000fffffffffffffu;

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool is_finite(double value)
{
    return (bits_of(value) & exponent_bits) != exponent_bits;
}

bool is_absent(double value)
{
    return !is_finite(value) && (bits_of(value) & mantissa_bits) != 0;
}

bool is_positive(double value)
{
    return is_finite(value) && value > 0.0;
}

/* The longest spelling accepted; a double needs 17 digits, an exact decimal
 * fraction of one rarely more than 60. */
enum { number_capacity = 128 };

static const char *skip_digits(const char *text)
{
    while (*text >= '0' && *text <= '9')
        text++;
    return text;
}

/* The grammar, so that strtod gets nothing it would read in its own way. */
bool is_decimal(const char *text)
{
    if (*text == '-' || *text == '+')
        text++;
    const char *whole = text;
    text = skip_digits(text);
    size_t digits = (size_t)(text - whole);
    if (*text == '.') {
        const char *fraction = ++text;
        text = skip_digits(text);
        digits += (size_t)(text - fraction);
    }
    if (digits == 0)
        return false;
    if (*text == 'e' || *text == 'E') {
        text++;
        if (*text == '-' || *text == '+')
            text++;
        const char *exponent = text;
        text = skip_digits(text);
        if (text == exponent)
            return false;
    }
    return *text == '\0';
}

/* strtod rounds correctly but wants the decimal point of the locale, which
 * another part of the program may have set. */
static double convert(const char *text)
{
    const char *point = localeconv()->decimal_point;
    const char *dot = strchr(text, '.');
    if (!dot || strcmp(point, ".") == 0)
        return strtod(text, NULL);
    char local[number_capacity + 16];
    snprintf(local, sizeof local, "%.*s%s%s", (int)(dot - text), text, point, dot + 1);
    return strtod(local, NULL);
}

/* Digits with at most one point, as whole / 10^decimals. */
struct digits {
    uint64_t whole;
    size_t count;
    size_t decimals;
};

/* As many as always fit in 64 bits. */
enum { most_digits = 19 };

static bool read_digits(const char *text, struct digits *out)
{
    struct digits digits = {0};
    bool point = false;
    for (; *text; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (*text < '0' || *text > '9' || ++digits.count > most_digits)
            return false;
        digits.whole = 10 * digits.whole + (uint64_t)(*text - '0');
        digits.decimals += point;
    }
    *out = digits;
    return digits.count > 0;
}

/* Where both are exact in the type, one division rounds as strtod does, and costs a
 * tenth: up to 15 digits in a double. An x87 number has 11 bits more: what it rounds to
 * rounds on to the same double, unless those bits say that it lies just in the middle
 * between two. */
static bool divide(struct digits digits, double *out)
{
    static const double tens[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    if (digits.count <= 15) {
        *out = (double)digits.whole / tens[digits.decimals];
        return true;
    }
#if LDBL_MANT_DIG == 64 && defined __x86_64__
    static const long double long_tens[] = {
        1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
        1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L};
    long double quotient = (long double)digits.whole / long_tens[digits.decimals];
    uint64_t mantissa;
    memcpy(&mantissa, &quotient, sizeof mantissa);
    *out = (double)quotient;
    return (mantissa & 0x7ff) != 0x400;
#else
    return false;
#endif
}

bool parse_decimal(const char *text, double *out)
{
    double value = 0.0;
    struct digits digits;
    if (read_digits(text, &digits) && divide(digits, &value)) {
        *out = value;
        return true;
    }
    if (strlen(text) >= number_capacity || !is_decimal(text))
        return false;
    value = convert(text);
    if (!is_finite(value))
        return false;
    *out = value;
    return true;
}

bool parse_whole(const char *text, uint64_t *out)
{
    if (*text == '\0' || *skip_digits(text) != '\0')
        return false;
    uint64_t value = 0;
    for (; *text; text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}
