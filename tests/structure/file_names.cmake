# Files are named for what they hold.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/src/* ${ROOT}/tests/* ${ROOT}/cmake/* ${ROOT}/scripts/*)
list(FILTER files EXCLUDE REGEX "node_modules")
foreach(file IN LISTS files)
  if(file MATCHES "/(utils?|helpers?|common|misc)[.][a-z]+$")
    message(SEND_ERROR "${file}: says nothing about what is inside")
  endif()
endforeach()
