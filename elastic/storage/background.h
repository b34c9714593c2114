#pragma once

namespace sluice::elastic {

// From now on this thread gets a tenth of a processor that others want, and all that they leave.
// For what is done beside training, on a thread of its own: a process that is not privileged cannot
// take it back.
void LowerPriority();

}  // namespace sluice::elastic
