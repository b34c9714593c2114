#include "executor/pods/own_pod.h"

#include <chrono>
#include <thread>

#include "base/log.h"
#include "base/sleep.h"
#include "k8s/api_verbs.h"
#include "k8s/pod_spec.h"

namespace sluice::executor {
namespace {

constexpr std::chrono::seconds kAnswerPatience(1);
constexpr int kGraceSeconds = 5;

}  // namespace

bool OwnPod::Goes() const {
  std::stop_source late;
  const std::jthread timer([&late](const std::stop_token& answered) {
    if (SleepFor(kAnswerPatience, answered)) {
      late.request_stop();
    }
  });
  const k8s::ObjectAnswer pod =
      k8s::GetObject(client_, k8s::kPods, namespace_, name_, late.get_token());
  return pod.ok() && pod.object.leaving;
}

bool OwnPod::Delete(const std::stop_token& stop) const {
  const k8s::ObjectAnswer pod = k8s::GetObject(client_, k8s::kPods, namespace_, name_, stop);
  if (!pod.ok()) {
    return false;
  }
  const k8s::ApiAnswer deleted =
      k8s::DeleteAll(client_, {{k8s::kPods, namespace_, name_, pod.object.uid, kGraceSeconds}},
                     stop)
          .at(0);
  if (!deleted.ok()) {
    log::Info("kubernetes pod={} is left to others: {}", name_, deleted.status.message());
  }
  return deleted.ok();
}

}  // namespace sluice::executor
