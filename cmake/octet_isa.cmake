# octet_isa(<kernel|search> <folder> FLAGS <flag>...)
# Compiles the sources of an instruction set (kernel: kernels/cpu/isa/<folder>/*.cpp of octet_kernels, search:
# tensor/isa/<folder>/*.cpp of octet_tensor) with the given machine flags, links them into one relocatable object and
# hides every symbol but octet_<kernel|search>_table_<folder>. Without this, inline functions compiled
# with -mavx512f leak as weak symbols that the linker may pick for baseline code, which then crashes on
# older CPUs. tests/structure checks the result with nm.
# GNU ld, whatever linker the compiler uses: LLVM's knows no --force-group-allocation.
find_program(OCTET_GNU_LD NAMES ${CMAKE_CXX_LIBRARY_ARCHITECTURE}-ld.bfd ld.bfd REQUIRED)
function(octet_isa kind folder)
  cmake_parse_arguments(ARG "" "" "FLAGS" ${ARGN})
  if(kind STREQUAL kernel)
    set(place kernels/cpu/isa)
    set(module octet_kernels)
    set(objects octet_isa_${folder})
    set(have OCTET_HAVE_ISA_${folder})
  else()
    set(place tensor/isa)
    set(module octet_tensor)
    set(objects octet_search_${folder})
    set(have OCTET_HAVE_SEARCH_${folder})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${place}/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(${objects} OBJECT ${sources})
  target_include_directories(${objects} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${objects} PRIVATE ${ARG_FLAGS} -fno-lto)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${objects} PRIVATE -fno-gnu-unique)  # objcopy cannot make unique symbols local
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC's own AVX-512 header reads variables that it leaves undefined on purpose (GCC bug 105593).
    target_compile_options(${objects} PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  set(merged ${CMAKE_CURRENT_BINARY_DIR}/${objects}.o)
  add_custom_command(
    OUTPUT ${merged}
    COMMAND ${OCTET_GNU_LD} -r --force-group-allocation -o ${merged} $<TARGET_OBJECTS:${objects}>
    COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=octet_${kind}_table_${folder} ${merged}
    DEPENDS ${objects} $<TARGET_OBJECTS:${objects}>
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Isolating ${kind} code of ${folder}"
  )
  set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(${module} PRIVATE ${merged})
  target_compile_definitions(${module} PRIVATE ${have})
  set_property(GLOBAL APPEND PROPERTY OCTET_ISA_OBJECTS ${merged})
endfunction()
