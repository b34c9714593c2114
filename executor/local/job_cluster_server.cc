#include "executor/local/job_cluster_server.h"

#include <fmt/core.h>

#include <condition_variable>
#include <deque>
#include <utility>

#include "base/mutex.h"
#include "executor/jobs/progress_codec_internal.h"
#include "executor/local/job_cluster.grpc.pb.h"
#include "executor/local/job_cluster_codec_internal.h"

#include "elastic/transport/call_internal.h"

namespace sluice::executor {
namespace {

using elastic::AnswerCall;

// Large enough for a configuration, which is a plan with its vocabularies.
constexpr elastic::ServerLimits kLimits{.name = "cluster of a job",
                                        .max_request_bytes = elastic::kMaxMessageBytes,
                                        .max_answer_bytes = elastic::kMaxMessageBytes,
                                        .memory_bytes = size_t{1} << 30};
// By then no caller waits for an answer.
constexpr auto kShutdownGrace = std::chrono::milliseconds(100);

class Service final : public JobClusterService::StreamedService {
 public:
  template <typename Request, typename Reply>
  using Call = grpc::ServerUnaryStreamer<Request, Reply>;

  Service(std::string token, JobCluster& cluster) : token_(std::move(token)), cluster_(cluster) {}

  grpc::Status StreamedLaunch(grpc::ServerContext* context,
                              Call<LaunchRequest, LaunchReply>* call) override {
    return Authorized(context, call, [this](elastic::Term term, const LaunchRequest& request) {
      return cluster_.Launch(term, FromProto(request));
    });
  }

  grpc::Status StreamedStop(grpc::ServerContext* context,
                            Call<StopRequest, StopReply>* call) override {
    return Authorized(context, call, [this](elastic::Term term, const StopRequest& request) {
      return cluster_.Stop(term, request.name(), request.grace_seconds());
    });
  }

  grpc::Status StreamedReport(grpc::ServerContext* context,
                              Call<ReportRequest, ReportReply>* call) override {
    return Authorized(context, call, [this](elastic::Term term, const ReportRequest& request) {
      for (const std::string& notice : request.notices()) {
        cluster_.Notice(term, notice);
      }
      if (request.has_progress()) {
        cluster_.Report(term, FromProto(request.progress()));
      }
      return Status();
    });
  }

  grpc::Status StreamedFinish(grpc::ServerContext* context,
                              Call<FinishRequest, FinishReply>* call) override {
    return Authorized(context, call, [this](elastic::Term term, const FinishRequest& request) {
      return cluster_.Finish(term, FromProto(request));
    });
  }

  grpc::Status StreamedWatch(
      grpc::ServerContext* context,
      grpc::ServerSplitStreamer<WatchRequest, FleetEventProto>* call) override {
    grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    return elastic::ToGrpc(Guarded("telling a master what happens", [&]() -> Status {
      WatchRequest request;
      if (!call->Read(&request)) {
        return InvalidArgument("a call without a message that can be read");
      }
      const elastic::Term term = elastic::TermOf(context->client_metadata());
      for (;;) {
        ASSIGN_OR_RETURN(const elastic::FleetEvent event, NextEvent(term));
        if (!call->Write(ToProto(event))) {
          return Unavailable("the master went away");  // its end is reported as an event
        }
      }
    }));
  }

  void BeginTerm(elastic::Term term) {
    const MutexLock lock(mutex_);
    term_ = term;
    events_.clear();
    changed_.notify_all();
  }
  void AddEvent(const elastic::FleetEvent& event) {
    const MutexLock lock(mutex_);
    events_.push_back(event);  // bounded by the number of processes
    changed_.notify_all();
  }
  void Close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  // Checks the token before the message is parsed. `handle`: Status(elastic::Term term, const
  // Request&).
  template <typename Request, typename Reply, typename Handle>
  grpc::Status Authorized(grpc::ServerContext* context, Call<Request, Reply>* call,
                          const Handle& handle) {
    grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    const elastic::Term term = elastic::TermOf(context->client_metadata());
    return AnswerCall(call, [&](const Request* request, Reply*) { return handle(term, *request); });
  }

  grpc::Status Admit(grpc::ServerContext* context) {
    grpc::Status allowed = elastic::CheckToken(*context, token_);
    if (!allowed.ok()) {
      return allowed;
    }
    const MutexLock lock(mutex_);
    return elastic::ToGrpc(Expect(elastic::TermOf(context->client_metadata())));
  }

  Status Expect(elastic::Term term) const REQUIRES(mutex_) {
    if (closed_) {
      return Unavailable("the job is over");
    }
    return term == term_ ? Status()
                         : Status(Code::kAborted,
                                  fmt::format("the job's master is that of term {}, not of term {}",
                                              term_, term));
  }

  Result<elastic::FleetEvent> NextEvent(elastic::Term term) {
    MutexLock lock(mutex_);
    for (;;) {
      RETURN_IF_ERROR(Expect(term));
      if (!events_.empty()) {
        elastic::FleetEvent event = std::move(events_.front());
        events_.pop_front();
        return event;
      }
      changed_.wait(lock.native());
    }
  }

  const std::string token_;
  JobCluster& cluster_;
  Mutex mutex_;
  std::condition_variable changed_;
  elastic::Term term_ GUARDED_BY(mutex_) = elastic::kNoTerm;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::deque<elastic::FleetEvent> events_ GUARDED_BY(mutex_);  // not fetched yet
};

class Server final : public JobClusterServer {
 public:
  Server(std::string token, JobCluster& cluster) : service_(std::move(token), cluster) {}
  ~Server() override {
    service_.Close();
    if (server_ != nullptr) {
      server_->Shutdown(kShutdownGrace);
    }
  }
  Status Listen(const std::string& address) {
    ASSIGN_OR_RETURN(server_, elastic::StartServer(kLimits, address, {}, &service_));
    return Status();
  }
  void BeginTerm(elastic::Term term) override { service_.BeginTerm(term); }
  void Report(const elastic::FleetEvent& event) override { service_.AddEvent(event); }

 private:
  Service service_;
  std::unique_ptr<elastic::RpcServer> server_;
};

}  // namespace

Result<std::unique_ptr<JobClusterServer>> JobClusterServer::Start(const std::string& address,
                                                                  const std::string& token,
                                                                  JobCluster& cluster) {
  auto server = std::make_unique<Server>(token, cluster);
  RETURN_IF_ERROR(server->Listen(address));
  return Result<std::unique_ptr<JobClusterServer>>(std::move(server));
}

}  // namespace sluice::executor
