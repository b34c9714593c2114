#include "executor/pods/server_budget.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

#include "base/log.h"
#include "k8s/api_verbs.h"
#include "k8s/disruption_budget.h"

namespace sluice::executor {
namespace {

constexpr auto kRetry = std::chrono::seconds(5);
// More than there are.
constexpr uint32_t kAll = 1'000'000;

}  // namespace

ServerBudget::ServerBudget(k8s::ApiClient& client, Job job, MayWrite may_write)
    : client_(client),
      job_(std::move(job)),
      name_(job_.name + "-servers"),
      may_write_(std::move(may_write)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

ServerBudget::~ServerBudget() = default;

void ServerBudget::Keep(uint32_t servers, bool complete) {
  if (servers == 0) {
    return;
  }
  const uint32_t stay = servers < 2 ? 0 : servers - (complete ? 1 : 0);
  const MutexLock lock(mutex_);
  if (std::exchange(wanted_, stay) != stay) {
    changed_.notify_all();
  }
}

void ServerBudget::KeepAll() {
  const MutexLock lock(mutex_);
  if (std::exchange(wanted_, kAll) != kAll) {
    changed_.notify_all();
  }
}

void ServerBudget::Run(const std::stop_token& stop) {
  std::optional<uint32_t> written;
  bool failed = false;
  while (!stop.stop_requested()) {
    std::optional<uint32_t> wanted;
    {
      MutexLock lock(mutex_);
      const auto news = [this, written]() REQUIRES(mutex_) { return wanted_ != written; };
      if (failed) {
        changed_.wait_for(lock.native(), stop, kRetry, [] { return false; });
      } else {
        changed_.wait(lock.native(), stop, news);
      }
      wanted = wanted_;
    }
    if (stop.stop_requested() || wanted == written) {
      failed = false;
      continue;
    }
    const Status status =
        may_write_(stop) ? Write(*wanted, stop) : FailedPrecondition("there may be a later master");
    if (!status.ok() && !failed && !stop.stop_requested()) {
      log::Warn("{}: a drain may evict several servers at once: {}", name_, status.message());
    }
    failed = !status.ok();
    written = failed ? written : wanted;
  }
}

Status ServerBudget::Write(uint32_t available, const std::stop_token& stop) {
  bool unknown_kind = false;
  Status status = WriteAs(k8s::kDisruptionBudgets, available, stop, unknown_kind);
  if (unknown_kind) {  // an API server before 1.21 lacks that version
    status = WriteAs(k8s::kOldDisruptionBudgets, available, stop, unknown_kind);
  }
  return status;
}

Status ServerBudget::WriteAs(const k8s::Resource& kind, uint32_t available,
                             const std::stop_token& stop, bool& unknown_kind) {
  if (available == 0) {
    const k8s::ObjectAnswer there = k8s::GetObject(client_, kind, job_.namespace_name, name_, stop);
    unknown_kind = there.fault == k8s::Fault::kNotFound;  // or there is none
    if (!there.ok()) {
      return unknown_kind ? OkStatus() : there.status;
    }
    return k8s::DeleteAll(client_, {{kind, job_.namespace_name, name_, there.object.uid, 1}}, stop)
        .front()
        .status;
  }
  const k8s::ObjectAnswer made =
      k8s::CreateAll(client_,
                     {{kind, job_.namespace_name,
                       k8s::BuildDisruptionBudget(kind, job_.namespace_name, name_, job_.owner,
                                                  job_.uid, available)}},
                     stop)
          .front();
  unknown_kind = made.fault == k8s::Fault::kNotFound;
  RETURN_IF_ERROR(made.status);
  // It may have been there with another number.
  return k8s::PatchObject(client_, kind, job_.namespace_name, name_, "",
                          k8s::DisruptionBudgetPatch(available), stop)
      .status;
}

}  // namespace sluice::executor
