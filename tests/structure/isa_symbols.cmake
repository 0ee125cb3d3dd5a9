# The object of an ISA shows exactly one global definition, its table: nothing of it can be linked by mistake.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${NM} --extern-only --defined-only ${OBJECT} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" symbols "${output}")
list(FILTER symbols INCLUDE REGEX "^[0-9a-f]+ ")
list(LENGTH symbols count)
if(NOT count EQUAL 1 OR NOT symbols MATCHES " octet_(kernel|search)_table_[a-z0-9_]+$")
  message(FATAL_ERROR "${OBJECT} shows ${symbols}; expected octet_kernel_table_... or octet_search_table_... alone")
endif()
