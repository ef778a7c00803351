# Toolchain file of the fuzz preset: the newest clang there is.
find_program(clang_path NAMES clang clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang-15
             clang-14 REQUIRED)
set(CMAKE_C_COMPILER ${clang_path})
