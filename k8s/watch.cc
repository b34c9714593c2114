#include "k8s/watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "k8s/transfer_internal.h"

namespace sluice::k8s {
namespace {

// Bookmarks come each minute: silence half as long again is not caused by waiting traffic.
constexpr double kSilenceSeconds = 90;
// Changes that no event has reported are seen at the latest after this time.
constexpr double kListAgainSeconds = 60;
// The server ends a stream in an orderly way after this time; otherwise it cuts open ones off.
constexpr int kStreamSeconds = 240;

}  // namespace

Result<std::unique_ptr<ObjectWatch>> ObjectWatch::Start(ApiClient& client, Selection selection,
                                                        Listener listener,
                                                        const std::stop_token& stop) {
  std::unique_ptr<ObjectWatch> watch(
      new ObjectWatch(client, std::move(selection), std::move(listener)));
  RETURN_IF_ERROR(watch->List(stop));
  watch->thread_ =
      std::jthread([self = watch.get()](const std::stop_token& ended) { self->Loop(ended); });
  return watch;
}

ObjectWatch::ObjectWatch(ApiClient& client, Selection selection, Listener listener)
    : client_(client),
      selection_(std::move(selection)),
      listener_(std::move(listener)),
      set_(std::make_unique<TransferSet>(1)) {}

ObjectWatch::~ObjectWatch() {
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::map<std::string, uint64_t> ObjectWatch::restarts() const {
  const MutexLock lock(mutex_);
  return restarts_;
}

Status ObjectWatch::List(const std::stop_token& stop) {
  Listing listing = ListObjects(client_, selection_, stop);
  listed_ = client_.clock().Now();
  RETURN_IF_ERROR(listing.status);
  ASSIGN_OR_RETURN(const std::vector<ObjectChange> changes,
                   known_.OnList(std::move(listing.objects), listing.resource_version));
  for (const ObjectChange& change : changes) {
    listener_(change);
  }
  return OkStatus();
}

void ObjectWatch::Loop(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { set_->Wake(); });
  bool list = false;
  while (!stop.stop_requested()) {
    if (list) {
      const Status listed = List(stop);
      if (!listed.ok()) {
        log::Warn("kubernetes list again error={}", listed.message());
        Pause(stop);
        continue;
      }
    }
    const Ending ending = Follow(stop);
    if (stop.stop_requested()) {
      break;
    }
    {
      const MutexLock lock(mutex_);
      ++restarts_[ending.reason];
    }
    list = ending.list;
    if (ending.pause) {
      Pause(stop);
    }
  }
}

// The same waits as between the attempts of a call.
void ObjectWatch::Pause(const std::stop_token& stop) {
  ApiAnswer broken;
  broken.fault = Fault::kUnreachable;
  const double seconds = SecondsUntilRetry(broken, ++failures_, 1).value_or(0);
  const TimePoint begin = client_.clock().Now();
  for (double left = seconds; left > 0 && !stop.stop_requested();
       left = seconds - SecondsBetween(begin, client_.clock().Now())) {
    set_->Turn(left);
  }
}

ApiRequest ObjectWatch::WatchRequest() const {
  ApiRequest request;
  request.verb = Verb::kWatch;
  request.resource = selection_.resource;
  request.namespace_name = selection_.namespace_name;
  request.query = {{"watch", "1"},
                   {"resourceVersion", known_.version()},
                   {"allowWatchBookmarks", "true"},
                   {"timeoutSeconds", std::to_string(kStreamSeconds)}};
  if (!selection_.label_selector.empty()) {
    request.query.emplace_back("labelSelector", selection_.label_selector);
  }
  return request;
}

ObjectWatch::Ending ObjectWatch::EndingOf(Fault fault, const std::string& message) const {
  if (fault != Fault::kGone) {
    log::Info("kubernetes watch begins anew error={}", message);
  }
  // From the same version, unless that caused the failure.
  const bool list =
      fault == Fault::kGone || fault == Fault::kVersionTooLarge || fault == Fault::kDamaged;
  return {std::string(FaultName(fault)), list, fault != Fault::kGone};
}

// Applies one event; false: the stream is of no further use, as `ending` says.
bool ObjectWatch::Apply(const std::string& text, Ending& ending) {
  Result<WatchFrame> frame = ReadWatchFrame(text);
  if (!frame.ok()) {
    ending = EndingOf(Fault::kDamaged, frame.status().message());
    return false;
  }
  if (frame->kind == WatchFrame::Kind::kError) {
    const ApiAnswer answer = AnswerOf(WatchRequest(), frame->code, "", std::nullopt);
    const bool too_large = frame->message.find("Too large resource version") != std::string::npos;
    const bool expired = frame->reason == "Expired" || frame->reason == "Gone";
    ending = EndingOf(too_large ? Fault::kVersionTooLarge : (expired ? Fault::kGone : answer.fault),
                      frame->message);
    return false;
  }
  for (const ObjectChange& change : known_.OnFrame(*std::move(frame))) {
    listener_(change);
  }
  failures_ = 0;
  return true;
}

ObjectWatch::Ending ObjectWatch::Follow(const std::stop_token& stop) {
  const ApiRequest request = WatchRequest();
  const Result<std::string> path = UrlPath(request);
  Result<Login> login = client_.credentials().Current();
  if (!path.ok() || !login.ok()) {
    return EndingOf(Fault::kUnauthorized,
                    path.ok() ? login.status().message() : path.status().message());
  }
  FrameDecoder decoder;
  std::vector<std::string> frames;
  Status decoded;
  const Clock& clock = client_.clock();
  TimePoint heard = clock.Now();
  Transfer transfer(*set_, client_.credentials().cluster(), *login, request, *path,
                    [&](std::string_view bytes) {
                      heard = clock.Now();
                      decoded = decoder.Feed(bytes, frames);
                      return decoded.ok();
                    });
  bool told = false;
  while (!stop.stop_requested()) {
    set_->Turn(kLongestPollSeconds);
    Ending ending;
    for (const std::string& frame : std::exchange(frames, {})) {
      if (!Apply(frame, ending)) {
        return ending;
      }
      told = true;
    }
    CURLcode how = CURLE_OK;
    if (set_->TakeEnded(&how) != nullptr) {
      const ApiAnswer answer = transfer.Answer(how, {});
      if (answer.ok()) {
        return {"ended", false, !told};
      }
      if (answer.fault == Fault::kUnauthorized) {
        client_.credentials().Refused(*login);
      }
      return EndingOf(answer.fault, decoded.ok() ? answer.status.message() : decoded.message());
    }
    const TimePoint now = clock.Now();
    if (SecondsBetween(heard, now) >= kSilenceSeconds) {
      log::Info("kubernetes watch begins anew error=nothing came for {} s", kSilenceSeconds);
      return {"silent", false, false};
    }
    if (SecondsBetween(listed_, now) >= kListAgainSeconds) {
      const Status listed = List(stop);
      if (!listed.ok()) {
        log::Warn("kubernetes list again error={}", listed.message());
      }
    }
  }
  return {};
}

}  // namespace sluice::k8s
