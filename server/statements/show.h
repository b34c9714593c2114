#pragma once

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Session;

// SHOW MODELS | MODEL | TRAIN | MODEL TYPES | JOBS | JOB and DESCRIBE MODEL | MODEL TYPE, as rows.
Status RunShow(const parser::ShowStatement& statement, Session& session,
               executor::ResultSink& sink);
Status RunDescribe(const parser::DescribeStatement& statement, Session& session,
                   executor::ResultSink& sink);

}  // namespace sluice::server
