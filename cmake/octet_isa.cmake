# octet_isa(<folder> FLAGS <flag>...)
# Compiles kernels/cpu/isa/<folder>/*.cpp with the given machine flags, links them into one relocatable
# object and hides every symbol but octet_kernel_table_<folder>. Without this, inline functions compiled
# with -mavx512f leak as weak symbols that the linker may pick for baseline code, which then crashes on
# older CPUs. tests/structure checks the result with nm.
function(octet_isa folder)
  cmake_parse_arguments(ARG "" "" "FLAGS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cpu/isa/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  set(objects octet_isa_${folder})
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
  set(merged ${CMAKE_CURRENT_BINARY_DIR}/octet_isa_${folder}.o)
  add_custom_command(
    OUTPUT ${merged}
    COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${merged} $<TARGET_OBJECTS:${objects}>
    COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=octet_kernel_table_${folder} ${merged}
    DEPENDS ${objects} $<TARGET_OBJECTS:${objects}>
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Isolating kernels of ${folder}"
  )
  set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(octet_kernels PRIVATE ${merged})
  target_compile_definitions(octet_kernels PRIVATE OCTET_HAVE_ISA_${folder})
  set_property(GLOBAL APPEND PROPERTY OCTET_ISA_OBJECTS ${merged})
endfunction()
