// The built-in page (webui/): one HTML file without outside references, part of the program. Made
// by `make webui` and put in by the next build; a program built without it has none.
#pragma once

#include <string_view>

namespace octet::serve {

/// UTF-8 HTML; empty when the program was built without the page.
std::string_view built_in_page();

}  // namespace octet::serve
