# sluice_families(folder function out_sources): every family in `folder` (deep_fm.cc with a function
# Family DeepFm(); family*.cc are none) goes into a generated
# std::vector<ModelType> sluice::models::families::<function>().
function(sluice_families folder function out_sources)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.cc)
  list(FILTER files EXCLUDE REGEX "/family[^/]*[.]cc$")
  set(declared "")
  set(listed "")
  foreach(file IN LISTS files)
    cmake_path(GET file STEM stem)
    string(REPLACE "_" ";" words ${stem})
    set(name "")
    foreach(word IN LISTS words)
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND name ${first}${rest})
    endforeach()
    string(APPEND declared "Family ${name}();\n")
    string(APPEND listed "${name}, ")
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${function}_families.cc)
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT [[
#include <iterator>

#include "models/families/family.h"

namespace sluice::models::families {

@declared@
std::vector<ModelType> @function@() {
  std::vector<ModelType> types;
  for (Family (*family)() : {@listed@}) {
    std::vector<ModelType> own = TypesOf(family());
    std::move(own.begin(), own.end(), std::back_inserter(types));
  }
  return types;
}

}  // namespace sluice::models::families
]])
  set(${out_sources} ${files} ${generated} PARENT_SCOPE)
endfunction()
