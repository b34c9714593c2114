#pragma once

namespace sluice::elastic {

// From now on this thread gets a tenth of a processor that others want, and all that they leave.
// For work during the training on a thread of its own: an unprivileged process cannot undo it.
void LowerPriority();

}  // namespace sluice::elastic
