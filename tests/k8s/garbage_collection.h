#pragma once

#include <stop_token>
#include <vector>

#include "k8s/api_client.h"
#include "k8s/object.h"

namespace sluice::k8s {

// Deletes the objects that have lost their owner: of these pods and Services, and of all Secrets.
void CollectGarbage(ApiClient& client, const std::vector<Object>& pods,
                    const std::vector<Object>& services, const std::stop_token& stop);

}  // namespace sluice::k8s
