#include "elastic/master/world_checkpoint.h"

#include "base/check.h"

namespace sluice::elastic {

std::string WorldCheckpoint::Begin(CheckpointManifest manifest) {
  SLUICE_CHECK(offered(), "a checkpoint begins when one is offered");
  cut_->begun = true;
  cut_->manifest = std::move(manifest);
  return cut_->draft.path;
}

WorldCheckpoint::Written WorldCheckpoint::OnWritten(const std::string& draft,
                                                    const Result<CheckpointManifest::File>& file) {
  if (!cut_.has_value() || cut_->draft.path != draft) {
    return Written::kObsolete;
  }
  if (!file.ok()) {
    return Written::kFailed;
  }
  cut_->manifest.files = {*file};
  return Written::kComplete;
}

bool WorldCheckpoint::Drop() {
  if (!cut_.has_value() || !cut_->begun) {
    return false;
  }
  cut_.reset();
  return true;
}

}  // namespace sluice::elastic
