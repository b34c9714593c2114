#pragma once

#include <string_view>

namespace sluice::planner {

// The text of compile_beside.py and compile_model.py.
std::string_view CompileProgram();

}  // namespace sluice::planner
