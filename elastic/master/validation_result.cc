#include "elastic/master/validation_result.h"

namespace sluice::elastic {

Status ValidationResult::Set(Metrics metrics, int64_t rows, uint64_t checksum) {
  metrics_ = std::move(metrics);
  rows_ = rows;
  if (checksum != 0 && checksum_ != 0 && checksum != checksum_) {
    return Status(Code::kAborted,
                  "the validation rows are not those of the last evaluation: the source changed "
                  "while the job ran")
        .SqlState("40001");
  }
  checksum_ = checksum;
  return Status();
}

void ValidationResult::Restore(Metrics metrics, int64_t rows, uint64_t checksum) {
  metrics_ = std::move(metrics);
  rows_ = rows;
  checksum_ = checksum;
}

}  // namespace sluice::elastic
