#pragma once

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Session;

// What the catalog knows about models, as rows. An unknown model is told at its place in the
// script.
Status ShowModels(Session& session, executor::ResultSink& sink);
Status ShowModelVersions(const parser::ModelName& model, Session& session,
                         executor::ResultSink& sink);
// SQLFlow's two columns: Model, Train Statement.
Status ShowTrain(const parser::ModelName& model, Session& session, executor::ResultSink& sink);
// Features with their types, attributes, parameter count, metrics, lineage.
Status DescribeModel(const parser::ModelName& model, Session& session, executor::ResultSink& sink);

Status DropModel(const parser::DropModelStatement& statement, Session& session,
                 executor::ResultSink& sink);
Status AlterModel(const parser::AlterModelStatement& statement, Session& session,
                  executor::ResultSink& sink);

}  // namespace sluice::server
