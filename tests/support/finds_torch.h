#pragma once

#include "planner/compile/python_models.h"

namespace sluice::planner {

// Whether the program exists and has torch, whose import takes seconds and is not tried.
inline bool FindsTorch(const PythonOptions& options) {
  constexpr char kFind[] =
      "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";
  const auto end =
      RunChildProgram({options.program, "-I", "-c", kFind}, "", options.limits, options.stop);
  return end.ok() && end->how == ProgramEnd::How::kExited && end->code == 0;
}

}  // namespace sluice::planner
