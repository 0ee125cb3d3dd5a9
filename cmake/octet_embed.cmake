# octet_embed(<target> <file> FUNCTION <namespace::name> HEADER <header>)
# Puts the bytes of a file into a target: defines the function, declared in the header, that returns them as a
# std::string_view. An empty view when the file does not exist at configure time.
function(octet_embed target file)
  cmake_parse_arguments(ARG "" "FUNCTION;HEADER" "" ${ARGN})
  set(length 0)
  set(bytes "0")
  if(EXISTS ${file})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(SIZE ${file} length)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  endif()
  get_filename_component(name ${file} NAME_WE)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${target}_${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT [[
#include "@ARG_HEADER@"

namespace {
constexpr unsigned char kBytes[] = {@bytes@};
}  // namespace

std::string_view @ARG_FUNCTION@() {
  return {reinterpret_cast<const char*>(kBytes), @length@};
}
]] @ONLY)
  target_sources(${target} PRIVATE ${source})
endfunction()
