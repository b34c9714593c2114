#include "base/short_copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace sluice {
namespace {

template <typename Number>
void CopiesEveryLength() {
  for (size_t count = 0; count < 100; ++count) {
    std::vector<Number> from(count);
    std::iota(from.begin(), from.end(), Number{1});
    std::vector<Number> to(count + 1);
    CopyShort(from.data(), count, to.data());
    EXPECT_EQ(to.back(), Number{}) << "beyond " << count;
    to.pop_back();
    EXPECT_EQ(to, from);
  }
}

TEST(ShortCopy, CopiesEveryLength) {
  CopiesEveryLength<float>();
  CopiesEveryLength<int64_t>();
}

}  // namespace
}  // namespace sluice
