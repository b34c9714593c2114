#include "executor/local/job_cluster_link.h"

#include <fmt/core.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "base/mutex.h"
#include "executor/jobs/progress_codec_internal.h"
#include "executor/local/job_cluster.grpc.pb.h"
#include "executor/local/job_cluster_codec_internal.h"

#include "elastic/transport/call_internal.h"

namespace sluice::executor {
namespace {

// Reports are for display only: if a gateway takes longer than this, the next report is newer.
constexpr auto kReportDeadline = std::chrono::seconds(2);
// Limit of queued notices: more than a person reads at once.
constexpr size_t kMaxNotices = 100;

class Link final : public JobClusterLink {
 public:
  Link(const std::string& address, const elastic::JobEndpoint& endpoint,
       std::chrono::milliseconds patience)
      : token_(endpoint.key.token),
        term_(endpoint.term),
        patience_(patience),
        stub_(JobClusterService::NewStub(elastic::OpenChannel(address, {}))) {
    for (const elastic::RunningProcess& process : endpoint.running) {
      running_[process.name] = process.role;
    }
    Prepare(&watch_context_);
    // The call lasts as long as the job, and ends when the gateway does.
    watch_context_.set_deadline(std::chrono::system_clock::time_point::max());
    watcher_thread_ = std::jthread([this] {
      // If handling an event throws, Guarded logs it, and the gateway counts as gone.
      [[maybe_unused]] const Status heard =
          Guarded("hearing the gateway", [this] { HearEvents(); });
      OnGatewayGone();
    });
    reporter_ = std::jthread([this] {
      [[maybe_unused]] const Status told =
          Guarded("telling the gateway", [this] { SendReports(); });
    });
  }
  ~Link() override {
    watch_context_.TryCancel();
    StopReports();
  }

  Status Launch(const elastic::ProcessSpec& spec) override {
    {
      const MutexLock lock(mutex_);
      if (gone_) {
        return Unavailable("the gateway that owns the fleet is gone");
      }
      running_[spec.name] = spec.role;  // its first event may come before the answer
    }
    grpc::ClientContext context;
    Prepare(&context);
    LaunchReply reply;
    const grpc::Status answer = stub_->Launch(&context, ToProto(spec), &reply);
    if (answer.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      // The gateway may still start it later. It handles requests in order, so the stop follows.
      static_cast<void>(Stop(spec.name, 0));
    }
    if (!answer.ok()) {
      const MutexLock lock(mutex_);
      running_.erase(spec.name);
    }
    return StatusOf(answer);
  }

  Status Stop(const std::string& name, double grace_seconds) override {
    {
      const MutexLock lock(mutex_);
      if (!running_.contains(name)) {
        return NotFound(fmt::format("no process '{}' in the fleet", name));
      }
    }
    grpc::ClientContext context;
    Prepare(&context);
    StopRequest request;
    request.set_name(name);
    request.set_grace_seconds(grace_seconds);
    StopReply reply;
    return StatusOf(stub_->Stop(&context, request, &reply));
  }

  void Watch(Watcher watcher) override {
    for (;;) {
      std::vector<elastic::FleetEvent> missed;
      {
        const MutexLock lock(mutex_);
        missed.swap(unwatched_);
        if (missed.empty()) {
          watcher_ = std::move(watcher);
          return;
        }
      }
      for (const elastic::FleetEvent& event : missed) {
        watcher(event);
      }
    }
  }

  void Report(const elastic::Progress& progress) override {
    const MutexLock lock(mutex_);
    progress_ = progress;
    reports_changed_.notify_all();
  }
  void Notice(const std::string& text) override {
    const MutexLock lock(mutex_);
    if (notices_.size() == kMaxNotices) {
      notices_.pop_front();
    }
    notices_.push_back(text);
    reports_changed_.notify_all();
  }

  bool IsWanted() override {
    const grpc::Status answer = Send(ReportRequest());
    return answer.ok() || answer.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  }

  Status Finish(const Result<std::string>& end) override {
    StopReports();
    const FinishRequest request = ToProto(end);
    for (;;) {
      grpc::ClientContext context;
      Prepare(&context);
      FinishReply reply;
      const grpc::Status answer = stub_->Finish(&context, request, &reply);
      // The gateway was suspended, or the machine slept: while the gateway exists, it has to record
      // the job's end.
      if (answer.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
        return StatusOf(answer);
      }
      log::Warn("the gateway does not take the end of the job yet");
    }
  }

 private:
  // A gateway that is suspended or very busy is not an error: the request is repeated.
  static Status StatusOf(const grpc::Status& answer) {
    return answer.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
               ? Unavailable("the gateway does not answer")
               : elastic::FromGrpc(answer, "the gateway");
  }

  void Prepare(grpc::ClientContext* context) const {
    elastic::Prepare(context, token_);
    context->set_deadline(std::chrono::system_clock::now() + patience_);
    context->AddMetadata(elastic::kTermKey, fmt::format("{}", term_));
  }

  void HearEvents() {
    const std::unique_ptr<grpc::ClientReader<FleetEventProto>> events =
        stub_->Watch(&watch_context_, WatchRequest());
    FleetEventProto event;
    while (events->Read(&event)) {
      Emit(FromProto(event));
    }
    const grpc::Status end = events->Finish();
    log::Debug("the gateway tells no more events: {}", end.error_message());
  }

  void Emit(const elastic::FleetEvent& event) {
    Watcher watcher;
    {
      const MutexLock lock(mutex_);
      if (event.kind == elastic::FleetEvent::Kind::kExited) {
        running_.erase(event.name);
      }
      watcher = watcher_;
      if (!watcher) {
        unwatched_.push_back(event);
      }
    }
    if (watcher) {
      watcher(event);
    }
  }

  // The gateway's processes die with it, and no other process will report that.
  void OnGatewayGone() {
    std::map<std::string, elastic::Role> lost;
    {
      const MutexLock lock(mutex_);
      gone_ = true;
      lost = running_;
    }
    for (const auto& [name, role] : lost) {
      elastic::FleetEvent event;
      event.kind = elastic::FleetEvent::Kind::kExited;
      event.name = name;
      event.role = role;
      event.exit_class = elastic::ExitClass::kPreempted;
      event.message = "the gateway is gone";
      Emit(event);
    }
  }

  grpc::Status Send(const ReportRequest& request) const {
    grpc::ClientContext context;
    Prepare(&context);
    context.set_deadline(std::chrono::system_clock::now() + kReportDeadline);
    ReportReply reply;
    return stub_->Report(&context, request, &reply);
  }

  // Sends what is queued, then waits for more, until it is told to stop.
  void SendReports() {
    for (;;) {
      ReportRequest request;
      {
        MutexLock lock(mutex_);
        while (!progress_.has_value() && notices_.empty() && !last_report_) {
          reports_changed_.wait(lock.native());
        }
        if (!progress_.has_value() && notices_.empty()) {
          return;
        }
        if (progress_.has_value()) {
          *request.mutable_progress() = ToProto(*progress_);
        }
        request.mutable_notices()->Add(notices_.begin(), notices_.end());
        progress_.reset();
        notices_.clear();
      }
      const grpc::Status answer = Send(request);
      if (!answer.ok()) {
        log::Debug("a report is lost: {}", answer.error_message());
      }
    }
  }
  // Sends what is still queued: after the job's end no progress is shown.
  void StopReports() {
    {
      const MutexLock lock(mutex_);
      last_report_ = true;
      reports_changed_.notify_all();
    }
    if (reporter_.joinable()) {
      reporter_.join();
    }
  }

  const std::string token_;
  const elastic::Term term_;
  const std::chrono::milliseconds patience_;
  const std::unique_ptr<JobClusterService::Stub> stub_;
  grpc::ClientContext watch_context_;
  Mutex mutex_;
  Watcher watcher_ GUARDED_BY(mutex_);
  std::vector<elastic::FleetEvent> unwatched_ GUARDED_BY(mutex_);  // from before Watch
  bool gone_ GUARDED_BY(mutex_) = false;
  std::map<std::string, elastic::Role> running_ GUARDED_BY(mutex_);
  std::condition_variable reports_changed_;
  std::optional<elastic::Progress> progress_ GUARDED_BY(mutex_);  // to be sent, like the notices
  std::deque<std::string> notices_ GUARDED_BY(mutex_);
  bool last_report_ GUARDED_BY(mutex_) = false;
  std::jthread reporter_, watcher_thread_;  // last: they use the rest
};

}  // namespace

std::unique_ptr<JobClusterLink> JobClusterLink::Connect(const std::string& address,
                                                        const elastic::JobEndpoint& endpoint,
                                                        std::chrono::milliseconds patience) {
  return std::make_unique<Link>(address, endpoint, patience);
}

}  // namespace sluice::executor
