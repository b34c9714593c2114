#include "executor/local/job_news.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <functional>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/process.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/jobs/progress_codec_internal.h"
#include "executor/local/job_process.pb.h"
#include "executor/processes/detached_process.h"
#include "executor/processes/packets_internal.h"
#include "executor/processes/process_title.h"

namespace sluice::executor {
namespace {

constexpr std::string_view kCancel = "cancel";

std::string NameOf(const catalog::JobRunner& runner) {
  return fmt::format("sluice-job-{}-{}", runner.pid, runner.started);
}

class Speaker final : public JobPublisher {
 public:
  Speaker(PacketSocket launcher, PacketListener listener, PollWaker waker)
      : launcher_(std::move(launcher)),
        listener_(std::move(listener)),
        waker_(std::move(waker)),
        thread_([this](const std::stop_token& end) { Run(end); }) {}
  ~Speaker() override {
    thread_.request_stop();
    waker_.Wake();
  }

  void Begun(int64_t job) override {
    JobNews news;
    news.set_begun(job);
    Say(news);
  }
  void Notice(const std::string& text) override {
    JobNews news;
    news.set_notice(text);
    Say(news);
  }
  void Progress(const elastic::Progress& progress) override {
    JobNews news;
    *news.mutable_progress() = ToProto(progress);
    {
      const MutexLock lock(mutex_);
      newest_ = news.SerializeAsString();
    }
    Say(news);
  }
  // A listener that misses it reads it from the catalog.
  void Ended(const std::string& answer) override {
    JobNews news;
    news.set_ended(answer);
    Say(news);
  }
  std::stop_token cancelled() const override { return cancelled_.get_token(); }

 private:
  void Say(const JobNews& news) {
    const std::string packet = news.SerializeAsString();
    const MutexLock lock(mutex_);
    if (launcher_.open() && !launcher_.Send(packet) && !news.has_progress()) {
      launcher_.HangUp();
    }
    for (const PacketSocket& guest : guests_) {
      if (!guest.Send(packet) && !news.has_progress()) {
        guest.HangUp();
      }
    }
  }

  void Run(const std::stop_token& end) {
    while (!end.stop_requested()) {
      // Logged by Guarded; the job continues.
      [[maybe_unused]] const Status turned =
          Guarded("telling how a job goes", [this]() -> Status { return Turn(); });
    }
  }

  Status Turn() {
    std::vector<int> descriptors{waker_.descriptor()};
    if (listener_.open()) {
      descriptors.push_back(listener_.descriptor());
    }
    {
      const MutexLock lock(mutex_);
      for (const PacketSocket& guest : guests_) {
        descriptors.push_back(guest.descriptor());
      }
      if (launcher_.open()) {
        descriptors.push_back(launcher_.descriptor());
      }
    }
    PollForReading(descriptors, std::nullopt);
    waker_.Clear();
    PacketSocket fresh = listener_.open() ? listener_.Accept() : PacketSocket();
    bool cancel = false;
    {
      const MutexLock lock(mutex_);
      if (fresh.open()) {
        if (!newest_.empty()) {
          fresh.Send(newest_);
        }
        guests_.push_back(std::move(fresh));
      }
      guests_.remove_if([](const PacketSocket& guest) { return !guest.Receive().ok(); });
      if (launcher_.open()) {
        const auto packet = launcher_.Receive();
        cancel = packet.ok() && packet->has_value() && **packet == kCancel;
        if (!packet.ok()) {
          launcher_ = PacketSocket();
        }
      }
    }
    if (cancel) {
      cancelled_.request_stop();  // outside the lock: it runs the registered callbacks
    }
    return OkStatus();
  }

  Mutex mutex_;
  PacketSocket launcher_ GUARDED_BY(mutex_);
  std::list<PacketSocket> guests_ GUARDED_BY(mutex_);
  std::string newest_ GUARDED_BY(mutex_);  // progress, for listeners that connect late
  std::stop_source cancelled_;
  const PacketListener listener_;
  const PollWaker waker_;
  std::jthread thread_;  // last: uses the others
};

class Listener final : public JobListener {
 public:
  Listener(PacketSocket socket, PollWaker waker)
      : socket_(std::move(socket)), waker_(std::move(waker)) {}

  News Next(const std::stop_token& stop, std::chrono::steady_clock::time_point until) override {
    const std::stop_callback<std::function<void()>> wake(stop, [this] { waker_.Wake(); });
    for (;;) {
      const auto packet = socket_.Receive();
      if (!packet.ok()) {
        return Gone{};
      }
      if (packet->has_value()) {
        return Read(**packet);
      }
      if (stop.stop_requested() || std::chrono::steady_clock::now() >= until) {
        waker_.Clear();
        return Nothing{};
      }
      PollForReading({socket_.descriptor(), waker_.descriptor()}, until);
    }
  }
  void Cancel() override { socket_.Send(kCancel); }

 private:
  static News Read(const std::string& packet) {
    JobNews news;
    if (!news.ParseFromString(packet)) {
      return Gone{};
    }
    switch (news.news_case()) {
      case JobNews::kBegun:
        return Begun{news.begun()};
      case JobNews::kNotice:
        return news.notice();
      case JobNews::kProgress:
        return FromProto(news.progress());
      case JobNews::kEnded:
        return Ended{news.ended()};
      case JobNews::NEWS_NOT_SET:
        break;
    }
    return Gone{};
  }

  const PacketSocket socket_;
  const PollWaker waker_;
};

Result<std::unique_ptr<JobListener>> MakeListener(PacketSocket socket) {
  ASSIGN_OR_RETURN(PollWaker waker, PollWaker::Make());
  return std::unique_ptr<JobListener>(
      std::make_unique<Listener>(std::move(socket), std::move(waker)));
}

}  // namespace

Result<std::unique_ptr<JobPublisher>> JobPublisher::Open(int launcher) {
  PacketSocket socket{Descriptor(launcher)};
  fcntl(launcher, F_SETFD, FD_CLOEXEC);  // the job's own processes do not inherit it
  // Anybody on this machine may have taken the name, whom no listener takes for the job: those that
  // wait for it read the catalog then, and it runs all the same.
  Result<PacketListener> listener = PacketListener::Open(NameOf(ThisProcess()));
  if (!listener.ok()) {
    log::Warn("nobody can listen to this job: {}", listener.status().ToString());
  }
  ASSIGN_OR_RETURN(PollWaker waker, PollWaker::Make());
  return std::unique_ptr<JobPublisher>(std::make_unique<Speaker>(
      std::move(socket), listener.ok() ? *std::move(listener) : PacketListener(),
      std::move(waker)));
}

Result<std::unique_ptr<JobListener>> ListenToJob(const catalog::JobRunner& runner) {
  if (FindProcess({runner.place, runner.pid, runner.started}) != ProcessState::kRunning) {
    return Unavailable("the process that runs the job is not on this machine");
  }
  ASSIGN_OR_RETURN(PacketSocket socket, PacketSocket::Connect(NameOf(runner)));
  return MakeListener(std::move(socket));
}

Result<std::unique_ptr<JobListener>> StartJobProcess(const std::string& binary,
                                                     const JobConfig& config,
                                                     const JobSecrets& secrets) {
  const bool needs_more = secrets.source().empty() || secrets.catalog().empty();
  ASSIGN_OR_RETURN(PacketSocket socket, StartDetached(binary, TitleOfJob(config.row().job()), "job",
                                                      config.SerializeAsString(),
                                                      secrets.SerializeAsString(), needs_more));
  return MakeListener(std::move(socket));
}

}  // namespace sluice::executor
