#pragma once

#include <string_view>

namespace sluice {

// Compares a secret with what a stranger has sent, in time that does not depend on where the two
// differ; only their lengths may be learnt.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace sluice
