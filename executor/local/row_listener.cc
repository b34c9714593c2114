#include "executor/local/row_listener.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/sleep.h"
#include "catalog/sql/sqlstate.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/job_record.h"
#include "executor/jobs/progress_codec_internal.h"

namespace sluice::executor {
namespace {

// Interval at which each waiting statement reads the row.
constexpr std::chrono::milliseconds kRowLook{200};

// "": there is none.
Result<std::string> ProgressRecordOf(int64_t job, catalog::JobStore& jobs) {
  ASSIGN_OR_RETURN(auto records, jobs.Records(job, kProgressRecord));
  return std::move(records[kProgressRecord]);
}

class RowListener final : public JobListener {
 public:
  RowListener(catalog::JobStore& jobs, int64_t job) : jobs_(jobs), job_(job) {}

  News Next(const std::stop_token& stop, std::chrono::steady_clock::time_point until) override {
    if (!begun_) {
      begun_ = true;
      return Begun{job_};
    }
    while (!stop.stop_requested() && std::chrono::steady_clock::now() < until) {
      const Result<News> news = Look();
      if (!news.ok() && !catalog::IsUnavailableForNow(news.status())) {
        return Gone();  // the caller then reads the row itself, and gets the error
      }
      if (news.ok() && !std::holds_alternative<Nothing>(*news)) {
        return *news;
      }
      SleepFor(std::min<std::chrono::duration<double>>(until - std::chrono::steady_clock::now(),
                                                       kRowLook),
               stop);
    }
    return Nothing();
  }

  void Cancel() override {
    const Status asked = jobs_.RequestCancel(job_);
    if (!asked.ok()) {
      log::Debug("job={} need not be cancelled: {}", job_, asked.message());
    }
  }

 private:
  Result<News> Look() {
    ASSIGN_OR_RETURN(const catalog::Job job, jobs_.Find(job_));
    if (catalog::HasEnded(job.state)) {
      ASSIGN_OR_RETURN(std::string answer, jobs_.Answer(job_));
      for (const auto& [micros, text] : NoticesOfAnswer(answer)) {
        if (NoticeName(micros) > noticed_) {
          noticed_ = NoticeName(micros);
          return News(text);
        }
      }
      return News(Ended{std::move(answer)});
    }
    ASSIGN_OR_RETURN(const auto notices, jobs_.Records(job_, kNoticeRecords));
    const auto notice = notices.upper_bound(noticed_);
    if (notice != notices.end()) {
      noticed_ = notice->first;
      return News(notice->second);
    }
    ASSIGN_OR_RETURN(const std::string progress, ProgressRecordOf(job_, jobs_));
    ProgressProto proto;
    if (progress.empty() || progress == told_ || !proto.ParseFromString(progress)) {
      return News(Nothing());
    }
    told_ = progress;
    return News(FromProto(proto));
  }

  catalog::JobStore& jobs_;
  const int64_t job_;
  bool begun_ = false;
  std::string told_;     // the newest progress
  std::string noticed_;  // the name of the newest notice
};

}  // namespace

std::unique_ptr<JobListener> ListenToRow(catalog::JobStore& jobs, int64_t job) {
  return std::make_unique<RowListener>(jobs, job);
}

Result<std::optional<elastic::Progress>> ProgressOf(int64_t job, catalog::JobStore& jobs) {
  ASSIGN_OR_RETURN(const std::string record, ProgressRecordOf(job, jobs));
  ProgressProto proto;
  return !record.empty() && proto.ParseFromString(record) ? std::optional(FromProto(proto))
                                                          : std::nullopt;
}

}  // namespace sluice::executor
