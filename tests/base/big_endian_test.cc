#include "base/big_endian.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace sluice {
namespace {

TEST(BigEndian, NumbersComeBack) {
  std::string bytes;
  AppendBigEndian<int8_t>(-1, &bytes);
  AppendBigEndian<uint16_t>(0x0102, &bytes);
  AppendBigEndian<int32_t>(-2, &bytes);
  AppendBigEndian(std::numeric_limits<int64_t>::min(), &bytes);
  EXPECT_EQ(bytes, std::string("\xff\x01\x02\xff\xff\xff\xfe\x80\0\0\0\0\0\0\0", 15));
  EXPECT_EQ(LoadBigEndian<uint16_t>(std::string_view(bytes).substr(1)), 0x0102);
  BigEndianReader reader(bytes);
  EXPECT_EQ(reader.Take<int8_t>(), -1);
  EXPECT_EQ(reader.Take<uint16_t>(), 0x0102);
  EXPECT_EQ(reader.Take<int32_t>(), -2);
  EXPECT_FALSE(reader.at_end());
  EXPECT_EQ(reader.Take<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(reader.at_end());
}

TEST(BigEndian, AReaderFailsForGoodAtTheFirstMissingItem) {
  BigEndianReader reader(std::string_view("name\0abc", 8));
  EXPECT_EQ(reader.String(), "name");
  EXPECT_EQ(reader.left(), 3U);
  EXPECT_EQ(reader.Take<uint32_t>(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.Bytes(1), "");
  EXPECT_EQ(reader.Take<char>(), '\0');
  EXPECT_FALSE(reader.at_end());
  BigEndianReader unended("abc");
  EXPECT_EQ(unended.String(), "");
  EXPECT_FALSE(unended.ok());
}

}  // namespace
}  // namespace sluice
