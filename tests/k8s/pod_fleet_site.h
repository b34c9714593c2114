#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "k8s/api_verbs.h"
#include "k8s/pod_fleet.h"
#include "tests/k8s/tested_api_server.h"
#include "tests/support/eventually.h"

namespace sluice::k8s {

// A fleet on the fake or on a real API server; the test plays the scheduler and the kubelets.
class PodFleetSite : public testing::Test {
 protected:
  void Use(bool real) { server_ = std::make_unique<TestedApiServer>(real); }
  ApiClient& client() { return server_->client(); }
  const std::string& ns() { return server_->namespace_name(); }

  Status StartFleet() {
    PodShape shape;
    shape.namespace_name = ns();
    shape.image = "sluice";
    auto fleet = PodFleet::Start(client(), shape, "job-uid", {});
    RETURN_IF_ERROR(fleet.status());
    fleet_ = *std::move(fleet);
    fleet_->Watch([this](const elastic::FleetEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    });
    return OkStatus();
  }
  elastic::ProcessSpec Worker(int number) {
    elastic::ProcessSpec spec;
    spec.role = elastic::Role::kWorker;
    spec.name = "job7-worker-" + std::to_string(number);
    spec.config = "plan";
    spec.incarnation = elastic::Incarnation(static_cast<uint64_t>(number));
    spec.resources = {0.1, int64_t{64} << 20};
    return spec;
  }
  // "+worker-1" started, "-worker-1" ended, "<" leaving, "?" waiting: the next event, skipping
  // those about waiting, which a real server reports in more steps.
  elastic::FleetEvent Next(bool waiting = false) {
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        while (taken_ < events_.size()) {
          const elastic::FleetEvent& event = events_[taken_++];
          if (waiting == (event.kind == elastic::FleetEvent::Kind::kWaiting)) {
            return event;
          }
        }
      }
      server_->clock().Advance(std::chrono::milliseconds(20));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::string NextWord() {
    const elastic::FleetEvent event = Next();
    return std::string(1, "+-g<?"[static_cast<size_t>(event.kind)]) + event.name;
  }
  std::vector<std::string> Pods() {
    std::vector<std::string> names;
    for (const Object& pod : ListObjects(client(), {kPods, ns(), ""}, {}).objects) {
      names.push_back(pod.name);
    }
    return names;
  }
  std::vector<std::string> Uids() {
    std::vector<std::string> uids;
    for (const Object& pod : ListObjects(client(), {kPods, ns(), ""}, {}).objects) {
      uids.push_back(pod.uid);
    }
    return uids;
  }
  size_t Secrets() {
    return ListObjects(client(), {kSecrets, ns(), "training.sluice/job=job-uid"}, {})
        .objects.size();
  }
  void WaitForPods(size_t count) {
    EXPECT_TRUE(Eventually([&] {
      server_->clock().Advance(std::chrono::milliseconds(100));
      return Pods().size() == count;
    }));
  }
  // As its kubelet would.
  void Run(const std::string& name) {
    server_->Bind(name, "node-1");
    server_->SetStatus(name, R"({"phase":"Running","containerStatuses":[{"name":"sluice",)"
                             R"("image":"sluice","imageID":"","ready":true,"restartCount":0,)"
                             R"("state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]})");
  }
  void End(const std::string& name, int code, const std::string& reason,
           const std::string& message) {
    const std::string phase = code == 0 ? "Succeeded" : "Failed";
    server_->SetStatus(
        name,
        R"({"phase":")" + phase +
            R"(","containerStatuses":[{"name":"sluice","image":"sluice","imageID":"",)"
            R"("ready":false,"restartCount":0,"state":{"running":null,"terminated":{"exitCode":)" +
            std::to_string(code) + R"(,"reason":")" + reason + R"(","message":")" + message +
            R"("}}}]})");
  }

  std::unique_ptr<TestedApiServer> server_;
  std::mutex mutex_;
  std::vector<elastic::FleetEvent> events_;
  size_t taken_ = 0;
  std::unique_ptr<PodFleet> fleet_;  // ends first
};

}  // namespace sluice::k8s
