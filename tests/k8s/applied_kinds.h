#pragma once

#include <string>

namespace sluice::k8s {

// As an administrator, in the real cluster of SLUICE_TEST_KUBERNETES: the resource TrainingJob and
// the priority classes.
void ApplyKinds(const std::string& namespace_name);

}  // namespace sluice::k8s
