# Nothing in the tree may name a place on somebody's machine.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/src/* ${ROOT}/tests/* ${ROOT}/cmake/* ${ROOT}/scripts/* ${ROOT}/docs/*
     ${ROOT}/*.md ${ROOT}/Makefile ${ROOT}/CMakeLists.txt)
list(FILTER files EXCLUDE REGEX "node_modules|^build/|[.]gguf$|[.]safetensors$|tests/golden/.*[.](f32|f64|bin|gz)$|machine_paths.cmake$")
foreach(file IN LISTS files)
  file(STRINGS ${ROOT}/${file} lines REGEX "(^|[^A-Za-z0-9_.-])/(home|root|work|mnt|Users)/")
  foreach(line IN LISTS lines)
    message(SEND_ERROR "${file}: names a path of a machine: ${line}")
  endforeach()
endforeach()
