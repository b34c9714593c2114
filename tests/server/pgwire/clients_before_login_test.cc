#include "server/pgwire/clients_before_login.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::server::pgwire {
namespace {

class ClientsBeforeLoginTest : public ::testing::Test {
 protected:
  uint64_t Add(const std::string& network, int client) {
    return clients_.Add(network, [this, client] { closed_.push_back(client); });
  }
  ClientsBeforeLogin clients_{8};
  std::vector<int> closed_;
};

TEST_F(ClientsBeforeLoginTest, ANetworkReplacesItsOwn) {
  Add("b", 0);
  for (int i = 1; i <= 6; ++i) {
    Add("a", i);
  }
  EXPECT_EQ(closed_, (std::vector<int>{1, 2}));
  EXPECT_EQ(clients_.size(), 5U);
}

TEST_F(ClientsBeforeLoginTest, TheOldestOfAllIsReplacedWhereThereAreTooMany) {
  for (int i = 0; i < 9; ++i) {
    Add(std::to_string(i), i);
  }
  EXPECT_EQ(closed_, (std::vector<int>{0}));
}

TEST_F(ClientsBeforeLoginTest, WhoHasLoggedInIsNotCounted) {
  for (int i = 0; i < 100; ++i) {
    clients_.Remove(Add("a", i));
  }
  EXPECT_TRUE(closed_.empty());
  EXPECT_EQ(clients_.size(), 0U);
  EXPECT_GE(ClientsBeforeLogin::MostByDescriptors(), 1U);
}

}  // namespace
}  // namespace sluice::server::pgwire
