#include "executor/pods/begun_spec.h"

#include <fmt/core.h>

#include "catalog/model_record.h"

namespace sluice::executor {

k8s::BegunSpec BegunSpecOf(const k8s::TrainingJobSpec& spec) {
  return {catalog::Sha256Hex(spec.statement), spec.source_secret, spec.source_key};
}

void HoldToBegun(const k8s::BegunSpec& begun, k8s::TrainingJobSpec& spec, Status* mistakes) {
  const k8s::BegunSpec now = BegunSpecOf(spec);
  if (now.statement_sha256 != begun.statement_sha256) {
    mistakes->Add(InvalidArgument(
        "spec.statement: it cannot change after the job has begun or was refused: create another "
        "TrainingJob"));
  }
  if (now.source_secret != begun.source_secret || now.source_key != begun.source_key) {
    mistakes->Add(InvalidArgument(fmt::format(
        "spec.source: it cannot change after the job has begun or was refused: create another "
        "TrainingJob (this one's is the key '{}' of the Secret '{}')",
        begun.source_key, begun.source_secret)));
    spec.source_secret = begun.source_secret;
    spec.source_key = begun.source_key;
  }
}

}  // namespace sluice::executor
