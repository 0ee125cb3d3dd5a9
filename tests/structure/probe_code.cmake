# The probe of an instruction set's int8 peak holds its product instruction: a compiler that takes the product of
# operands that stay the same once, before the loop, would leave a peak of sums alone.
cmake_minimum_required(VERSION 3.25)
list(FILTER OBJECTS INCLUDE REGEX "/probe\\.cpp\\.o(bj)?$")
if(NOT OBJECTS)
  message(FATAL_ERROR "no object of ${NAME}'s probe: the check sees nothing")
endif()
execute_process(COMMAND ${OBJDUMP} -d --no-show-raw-insn ${OBJECTS} OUTPUT_VARIABLE code COMMAND_ERROR_IS_FATAL ANY)
if(NOT code MATCHES "[ \t}](${PRODUCT})[ \t]")
  message(FATAL_ERROR "the probe of ${NAME} has no ${PRODUCT}: its int8 peak would be one of sums alone")
endif()
