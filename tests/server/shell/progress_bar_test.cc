#include "server/shell/progress_bar.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <limits>
#include <string>

#include "server/shell/shell_sink.h"
#include "server/statements/progress_text.h"

namespace sluice::server {
namespace {

class FakeClock final : public Clock {
 public:
  TimePoint Now() const override { return now; }
  TimePoint now{0};
};

elastic::Progress Half() {
  elastic::Progress progress;
  progress.rows_done = 1'250'000;
  progress.rows_total = 2'500'000;
  progress.rows_per_second = 351'234.4;
  progress.epoch = elastic::Epoch(3);
  progress.epochs = 5;
  progress.loss = 0.31234;
  progress.metrics = {{"auc", 0.90512}, {"accuracy", 0.85}};
  progress.workers = 2;
  progress.seconds_left = 75.2;
  return progress;
}

TEST(ProgressBar, SaysEverythingInOneLine) {
  EXPECT_EQ(FormatProgress(Half()),
            "epoch 3/5  50 %  1,250,000 of 2,500,000 rows  351,234 rows/s  loss 0.3123  "
            "auc 0.9051  2 workers  1:16 min left");
}

TEST(ProgressBar, LeavesOutWhatIsNotKnown) {
  elastic::Progress progress;
  progress.rows_done = 999;
  progress.loss = std::numeric_limits<double>::quiet_NaN();
  progress.seconds_left = std::numeric_limits<double>::infinity();
  EXPECT_EQ(FormatProgress(progress), "999 rows");
  progress.metrics = {{"auc", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_EQ(FormatProgress(progress), "999 rows");
  progress.metrics = {{"rmse", 201028.99312}};
  EXPECT_EQ(FormatProgress(progress), "999 rows  rmse 201029");
  progress.metrics.clear();
  progress.rows_total = 500;  // an estimate that was too low
  EXPECT_EQ(FormatProgress(progress), "100 %  999 of 500 rows");
}

TEST(ProgressBar, DrawsOneLineAgainAndAgainOnATerminal) {
  std::string text;
  const FakeClock clock;
  ProgressBar bar([&text](std::string_view part) { text += part; }, clock, 40);
  bar.Update(Half());
  EXPECT_EQ(text, "\r50 %  loss 0.3123  1:16 min left\x1b[K") << "what matters most fits";
  text.clear();
  bar.Clear();
  EXPECT_EQ(text, "\r\x1b[K");
  text.clear();
  bar.Clear();
  EXPECT_EQ(text, "") << "nothing is drawn, nothing to clear";
}

// A terminal of 80 columns has no room for everything, but always for loss and time left.
TEST(ProgressBar, KeepsLossAndTimeLeftOnANarrowTerminal) {
  const FakeClock clock;
  for (const size_t columns : {20, 33, 40, 59, 60, 79, 80, 119, 120, 200}) {
    std::string text;
    ProgressBar bar([&text](std::string_view part) { text += part; }, clock, columns);
    bar.Update(Half());
    ASSERT_TRUE(text.starts_with("\r") && text.ends_with("\x1b[K")) << columns;
    EXPECT_LT(text.size() - 4, columns);
    EXPECT_NE(text.find("left"), std::string::npos) << columns << text;
    if (columns >= 33) {
      EXPECT_NE(text.find("loss 0.3123  "), std::string::npos) << columns << text;
    }
  }
  std::string text;
  ProgressBar bar([&text](std::string_view part) { text += part; }, clock, 80);
  bar.Update(Half());
  EXPECT_EQ(text, "\r[#####.....]  epoch 3/5  50 %  loss 0.3123  auc 0.9051  1:16 min left\x1b[K");
}

TEST(ProgressBar, WritesPlainLinesNowAndThenElsewhere) {
  std::string text;
  FakeClock clock;
  ProgressBar bar([&text](std::string_view part) { text += part; }, clock, 0);
  elastic::Progress progress;
  for (int second = 0; second < 7; ++second) {
    clock.now = std::chrono::seconds(second);
    progress.rows_done = second;
    bar.Update(progress);
  }
  bar.Clear();
  EXPECT_EQ(text, "0 rows\n3 rows\n6 rows\n");
}

// A terminal that is stopped by Ctrl-S, or a full pipe: progress must not hold up the job.
TEST(ProgressBar, IsDroppedForWhoDoesNotRead) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string filling(4096, '.');
  while (write(ends[1], filling.data(), filling.size()) > 0) {
  }
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
  std::FILE* const err = fdopen(ends[1], "w");
  for (const size_t columns : {size_t{0}, size_t{40}}) {
    ShellSink sink({.format = OutputFormat::kCsv}, {.err = err, .err_columns = columns});
    sink.Progress(Half());  // would never return
  }
  close(ends[0]);
  std::fclose(err);
}

}  // namespace
}  // namespace sluice::server
