#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/sluice_process.h"

namespace sluice::server {
namespace {

using testing::HasSubstr;

// With so few a training would wait for connections that cannot be opened.
TEST(DescriptorLimit, TooFewAreToldAtTheStart) {
  const std::string few = "ulimit -n 24; ";
  for (const char* command : {"sql --source sqlite::memory: -c 'SELECT 1'",
                              "serve --source sqlite::memory: --grpc 127.0.0.1:0"}) {
    const ShellOutcome outcome =
        RunInShell(few + "timeout 30 " + SLUICE_BINARY + " " + command + " 2>&1");
    EXPECT_EQ(outcome.exit_code, 1) << command;
    EXPECT_THAT(outcome.output, HasSubstr("53000"));
    EXPECT_THAT(outcome.output, HasSubstr("may open 24 files and connections"));
    EXPECT_THAT(outcome.output, HasSubstr("ulimit -n"));
  }
}

// The soft limit can be raised; only the hard one matters.
TEST(DescriptorLimit, ALowSoftLimitIsRaised) {
  const ShellOutcome outcome = RunInShell(std::string("ulimit -S -n 24; ") + SLUICE_BINARY +
                                          " sql --source sqlite::memory: -c 'SELECT 1' 2>&1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

}  // namespace
}  // namespace sluice::server
