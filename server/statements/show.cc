#include "server/statements/show.h"

#include "executor/executor.h"
#include "server/statements/job_statements.h"
#include "server/statements/model_statements.h"
#include "server/statements/model_type_rows.h"

namespace sluice::server {

Status RunShow(const parser::ShowStatement& statement, Session& session,
               executor::ResultSink& sink) {
  using What = parser::ShowStatement::What;
  switch (statement.what) {
    case What::kModels:
      RETURN_IF_ERROR(ShowModels(session, sink));
      break;
    case What::kModel:
      RETURN_IF_ERROR(ShowModelVersions(*statement.model, session, sink));
      break;
    case What::kTrain:
      RETURN_IF_ERROR(ShowTrain(*statement.model, session, sink));
      break;
    case What::kModelTypes:
      RETURN_IF_ERROR(ShowModelTypes(sink));
      break;
    case What::kJobs:
      RETURN_IF_ERROR(ShowJobs(statement, session, sink));
      break;
    case What::kJob:
      RETURN_IF_ERROR(ShowJob(statement.job, statement.span, session, sink));
      break;
  }
  sink.Done("SHOW");
  return OkStatus();
}

Status RunDescribe(const parser::DescribeStatement& statement, Session& session,
                   executor::ResultSink& sink) {
  if (statement.model_type) {
    RETURN_IF_ERROR(DescribeModelType(*statement.model_type, sink));
  } else {
    RETURN_IF_ERROR(DescribeModel(*statement.model, session, sink));
  }
  sink.Done("DESCRIBE");
  return OkStatus();
}

}  // namespace sluice::server
