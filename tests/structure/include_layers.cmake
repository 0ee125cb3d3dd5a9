# A module includes only the modules that cmake/layers.cmake lists for it.
set(sources ${ROOT}/src)
set(ROOT ${sources})
include(${sources}/../cmake/check_layers.cmake)
