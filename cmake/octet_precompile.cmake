# octet_precompile(<library> LIBRARIES <target>... [OPTIONS <flag>...] HEADERS <header>...)
# Declares a library of nothing but precompiled headers, which targets of the same compiler flags then
# take with octet_use_precompiled(<target> <library>). Sources include what they use all the same: the
# preset `fuzz` builds the product without, so that a forgotten #include is found.
function(octet_precompile library)
  cmake_parse_arguments(ARG "" "" "LIBRARIES;OPTIONS;HEADERS" ${ARGN})
  if(NOT OCTET_PRECOMPILE)
    return()
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${library}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "")
  endif()
  add_library(${library} OBJECT ${source})
  target_link_libraries(${library} PRIVATE ${ARG_LIBRARIES})
  target_compile_options(${library} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${library} PRIVATE ${ARG_HEADERS})
endfunction()

function(octet_use_precompiled target library)
  if(OCTET_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${library})
    # Lets ccache see the header.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
endfunction()
