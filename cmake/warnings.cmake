# Warnings are errors on every compiler we build with; floating-point contraction is off so that the
# order of roundings is the one written in the source (see docs/numerics.md).
add_compile_options(
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Werror
  -ffp-contract=off -fno-math-errno
)
