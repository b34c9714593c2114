#pragma once

#include <string>

#include "base/status.h"

namespace sluice::executor {

class ResultSink;

// SHOW MODEL TYPES and DESCRIBE MODEL TYPE t, from the table that also validates attributes.
// `place`: of the name, for errors.
Status ShowModelTypes(ResultSink& sink);
Status DescribeModelType(const std::string& name, Span place, ResultSink& sink);

}  // namespace sluice::executor
