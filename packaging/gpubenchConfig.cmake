# find_package(gpubench) gives the target gpubench::gpubench: where gpubench.h is.
# The folder may be moved as a whole: everything is found from this file.
if(NOT TARGET gpubench::gpubench)
  add_library(gpubench::gpubench INTERFACE IMPORTED)
  get_filename_component(gpubench_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  set_target_properties(gpubench::gpubench PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${gpubench_prefix}/include")
  unset(gpubench_prefix)
endif()
