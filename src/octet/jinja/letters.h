// Upper and lower case of characters and texts, origins kept. Not for locales: the same everywhere.
// Simple case mapping only, one character to one character, but for the German sharp s.
#pragma once

#include "octet/jinja/text.h"

namespace octet::jinja {

char32_t upper(char32_t c);
char32_t lower(char32_t c);
bool is_letter(char32_t c);

Text upper(const Text& text);
Text lower(const Text& text);
/// The first character in upper case, all others in lower case.
Text capitalized(const Text& text);
/// str.title(): upper case for each letter that follows none.
Text titled(const Text& text);
/// Upper case behind white space and -([{< only, as the filter "title" has it.
Text titled_words(const Text& text);

}  // namespace octet::jinja
