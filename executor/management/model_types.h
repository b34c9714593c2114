#pragma once

#include <string>

#include "base/status.h"

namespace sluice::executor {

struct Context;
class ResultSink;

// SHOW MODEL TYPES and DESCRIBE MODEL TYPE t, straight from the table that also validates
// attributes, and of user-defined types. `place`: of the name, for an error.
Status ShowModelTypes(Context& context, ResultSink& sink);
Status DescribeModelType(const std::string& name, Span place, Context& context, ResultSink& sink);

}  // namespace sluice::executor
