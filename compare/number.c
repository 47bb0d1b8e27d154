#include "precise.h"

#include "number.h"

#include <locale.h>
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
    size_t before = (size_t)(dot - text);
    size_t width = strlen(point);
    memcpy(local, text, before);
    memcpy(local + before, point, width);
    strcpy(local + before + width, dot + 1);
    return strtod(local, NULL);
}

/* Digits with at most one point that fit in 53 bits, over a power of ten that a
 * double holds exactly: one division rounds as strtod does, and costs a tenth. */
static bool is_short(const char *text, double *out)
{
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t whole = 0;
    size_t digits = 0;
    size_t decimals = 0;
    bool point = false;
    for (; *text; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (*text < '0' || *text > '9' || ++digits > 15)
            return false;
        whole = 10 * whole + (uint64_t)(*text - '0');
        decimals += point;
    }
    *out = (double)whole / tens[decimals];
    return digits > 0;
}

bool parse_decimal(const char *text, double *out)
{
    double value = 0.0;
    if (is_short(text, &value)) {
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
