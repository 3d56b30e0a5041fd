// Elements as bits: word<SIZE>::type has SIZE bytes.

namespace gd {

template <int BYTES> struct word { typedef u8 type; };
template <> struct word<2> { typedef u16 type; };
template <> struct word<4> { typedef u32 type; };
template <> struct word<8> { typedef u64 type; };
template <> struct word<16> { typedef pack<u64, 2> type; };

}  // namespace gd

typedef gd::word<SIZE>::type E;
