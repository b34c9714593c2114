#pragma once

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

// SHOW MODEL TYPES and DESCRIBE MODEL TYPE t, straight from the table that also validates
// attributes.
Status ShowModelTypes(executor::ResultSink& sink);
Status DescribeModelType(const parser::Name& type, executor::ResultSink& sink);

}  // namespace sluice::server
