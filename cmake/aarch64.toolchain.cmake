# Cross build for 64-bit Arm boards; the tests run under qemu-user. scripts/aarch64_sysroot.sh fetches the libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
# Headers that differ between architectures; the compiler looks for them in its own root alone.
include_directories(SYSTEM ${CMAKE_FIND_ROOT_PATH}/usr/include/aarch64-linux-gnu)
# What the libraries of the sysroot need in turn; the linker wants to see it.
set(CMAKE_EXE_LINKER_FLAGS_INIT
  "-Wl,-rpath-link,${CMAKE_FIND_ROOT_PATH}/usr/lib/aarch64-linux-gnu:${CMAKE_FIND_ROOT_PATH}/lib/aarch64-linux-gnu")
