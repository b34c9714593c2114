#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "elastic/job/training_job.h"

namespace sluice::server {

// "epoch 2/5 48 % 1,200,000 of 2,500,000 rows 350,000 rows/s loss 0.312 auc 0.905 ...", leaving out
// the least important parts if it would exceed `most_bytes`; loss and time left stay.
std::string FormatProgress(const elastic::Progress& progress, size_t most_bytes = SIZE_MAX);

// Share of the work that is done, 0 to 1; an estimate, since the total may be estimated too low.
double ShareDone(const elastic::Progress& progress);

}  // namespace sluice::server
