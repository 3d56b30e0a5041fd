// A beam search over prefixes (Hannun, Maas, Jurafsky and Ng, 2014), a block per row. A prefix is a node of the row's tree: another
// prefix, its parent, and one more class. Node 0 is the empty one; step t adds 1 + t * width and up. After ctc.cuh.

struct Tree {
  i32* parents;
  i32* classes;
  u64* hashes;

  GD_DEVICE void plant(i32 node, i32 parent, i32 label, u64 hash) const {
    parents[node] = parent;
    classes[node] = label;
    hashes[node] = hash;
  }
  GD_DEVICE void add(i32 node, i32 parent, i32 label) const {
    const u64 mixed = (hashes[parent] ^ static_cast<u64>(label + 1)) * 0x9e3779b97f4a7c15ull;
    plant(node, parent, label, mixed ^ mixed >> 29);
  }
  // Whether two nodes are one prefix: one that left the beam and came back is another node.
  GD_DEVICE bool same(i32 a, i32 b) const {
    while (a != b) {
      if (hashes[a] != hashes[b] || classes[a] != classes[b]) return false;
      a = parents[a];
      b = parents[b];
    }
    return true;
  }
};

// Scores in ascending order as integers, none of them 0, which is what infinity and NaN become.
GD_DEVICE u64 key_of(double score) {
  if (!(fabs(score) < limits<double>::infinity())) return 0;
  const u64 bits = bits_as<u64>(score + 0.0);  // one zero for both
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}

// Where the best scores end: the first bytes of the last one's key, and behind them of its inverted place, because of equal scores the
// first stays.
struct Cut {
  u64 key, key_mask;
  u32 place, place_mask;

  GD_DEVICE bool begins(u64 of, u32 at) const { return (of & key_mask) == key && (~at & place_mask) == place; }
  GD_DEVICE bool keeps(u64 of, u32 at) const {
    const u64 high = of & key_mask;
    return of != 0 && (high > key || (high == key && (~at & place_mask) >= place));
  }
  static GD_DEVICE u32 byte_of(u64 of, u32 at, int level) {
    return static_cast<u32>(level < 8 ? of >> (56 - 8 * level) : static_cast<u64>(~at >> (88 - 8 * level))) & 255u;
  }
  GD_DEVICE void add(u32 byte, int level) {
    if (level < 8) {
      key |= static_cast<u64>(byte) << (56 - 8 * level);
      key_mask |= 255ull << (56 - 8 * level);
    } else {
      place |= byte << (88 - 8 * level);
      place_mask |= 255u << (88 - 8 * level);
    }
  }
};
// Where the best `wanted` of n scores end: byte by byte, until all that begin alike are wanted. If they are fewer, all numbers are kept.
GD_DEVICE Cut cut_of(const double* scores, i64 n, int wanted) {
  __shared__ u32 counts[256];
  __shared__ Cut cut;
  __shared__ u32 left;
  __shared__ int done;
  if (threadIdx.x == 0) {
    cut = Cut{0, 0, 0, 0};
    left = static_cast<u32>(wanted);
    done = 0;
  }
  for (int level = 0; level < 12; ++level) {
    for (int i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
      const u64 key = key_of(scores[i]);
      const u32 at = static_cast<u32>(i);
      if (key != 0 && cut.begins(key, at)) atomicAdd(&counts[Cut::byte_of(key, at, level)], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      u32 byte = 255;
      while (byte > 0 && counts[byte] < left) left -= counts[byte--];
      cut.add(byte, level);
      done = counts[byte] <= left;
    }
    __syncthreads();
    if (done) break;
  }
  const Cut found = cut;
  __syncthreads();
  return found;
}

// nodes: of the tree of a row.
struct Search {
  i64 width, top, nodes;
  i32 merge;
};

// Prefixes, the best first, with the logarithms of their paths that end in a blank, and in their last class.
struct Beam {
  i32* nodes;
  double* ending;
  double* staying;
};

// The labels of a prefix, from the last one on: how many are left when repeated ones count once. each(label, how many come before).
template <class Each> GD_DEVICE i64 labels_of(const i32* parents, const i32* classes, i32 node, int merge, i64 count, Each each) {
  i64 found = 0;
  while (node != 0) {
    const i32 before = parents[node];
    if (!merge || before == 0 || classes[before] != classes[node]) each(classes[node], count - ++found);
    node = before;
  }
  return found;
}

// Of a row: scores has width * classes numbers, beams 7 * width, places 2 * width and chosen width; found is [top + 1, rows]: how
// many labels each path has, and behind them 0, or 1 + the step at which no class had a probability, or -1 - the number of prefixes.
GD_KERNEL(ctc_beams)
(const T* x, const i32* lengths, double* scores, double* beams, i32* places, i32* parents, i32* classes, u64* hashes, u32* chosen,
 i32* ends, i64* found, T* log_probability, Sequences s, Search search) {
  const i64 row = blockIdx.x, width = search.width, blank = s.classes - 1, length = lengths[row];
  const Tree tree = {parents + row * search.nodes, classes + row * search.nodes, hashes + row * search.nodes};
  scores += row * width * s.classes;
  beams += row * 7 * width;
  places += row * 2 * width;
  chosen += row * width;
  double *totals = beams + 4 * width, *kept_blank = beams + 5 * width, *kept_label = beams + 6 * width;
  Beam beam = {places, beams, beams + width}, next = {places + width, beams + 2 * width, beams + 3 * width};
  __shared__ int taken;
  if (threadIdx.x == 0) {
    tree.plant(0, 0, static_cast<i32>(blank), 0);
    beam.nodes[0] = 0;
    beam.ending[0] = 0.0;
    beam.staying[0] = -limits<double>::infinity();
  }
  i64 count = 1;
  for (i64 t = 0; t < length; ++t) {
    const T* logits = x + (t * s.rows + row) * s.classes;
    double high = -limits<double>::infinity(), sum = 0.0;
    for (i64 c = threadIdx.x; c < s.classes; c += blockDim.x) high = maximum(high, static_cast<double>(load(logits + c)));
    high = block_reduce(high, max_op());
    for (i64 c = threadIdx.x; c < s.classes; c += blockDim.x) sum += exp(static_cast<double>(load(logits + c)) - high);
    sum = log(block_reduce(sum, sum_op()));
    const auto log_of = [&](i64 c) { return (static_cast<double>(load(logits + c)) - high) - sum; };
    for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
      const i32 last = tree.classes[beam.nodes[i]];
      totals[i] = log_sum(beam.ending[i], beam.staying[i]);
      kept_blank[i] = totals[i] + log_of(blank);
      kept_label[i] = last != blank ? beam.staying[i] + log_of(last) : -limits<double>::infinity();
    }
    __syncthreads();
    // first the prefixes as they are, then each with one more class
    double* longer = scores + count;
    for (i64 k = threadIdx.x; k < count * blank; k += blockDim.x) {
      const i64 i = k / blank, c = k - i * blank;
      longer[k] = (c == tree.classes[beam.nodes[i]] ? beam.ending[i] : totals[i]) + log_of(c);
    }
    __syncthreads();
    for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
      const i32 node = beam.nodes[i];
      for (i64 j = 0; node != 0 && j < count; ++j) {
        if (!tree.same(tree.parents[node], beam.nodes[j])) continue;
        double* same = longer + j * blank + tree.classes[node];
        kept_label[i] = log_sum(kept_label[i], *same);
        *same = -limits<double>::infinity();
        tree.parents[node] = beam.nodes[j];  // the same prefix, which is found at once in the next step
        break;
      }
      scores[i] = log_sum(kept_blank[i], kept_label[i]);
    }
    if (threadIdx.x == 0) taken = 0;
    __syncthreads();
    const i64 all = count * s.classes;
    const Cut cut = cut_of(scores, all, static_cast<int>(width));
    for (i64 k = threadIdx.x; k < all; k += blockDim.x)
      if (cut.keeps(key_of(scores[k]), static_cast<u32>(k))) chosen[atomicAdd(&taken, 1)] = static_cast<u32>(k);
    __syncthreads();
    if (taken == 0) {
      if (threadIdx.x == 0) found[search.top * s.rows + row] = 1 + t;
      return;
    }
    for (int a = threadIdx.x; a < taken; a += blockDim.x) {
      const u32 k = chosen[a];
      const u64 key = key_of(scores[k]);
      int rank = 0;
      for (int b = 0; b < taken; ++b) {
        const u32 other = chosen[b];
        const u64 its = key_of(scores[other]);
        rank += its > key || (its == key && other < k);
      }
      if (k < count) {
        next.nodes[rank] = beam.nodes[k];
        next.ending[rank] = kept_blank[k];
        next.staying[rank] = kept_label[k];
      } else {
        const i64 parent = (k - count) / blank, node = 1 + t * width + rank;
        tree.add(static_cast<i32>(node), beam.nodes[parent], static_cast<i32>(k - count - parent * blank));
        next.nodes[rank] = static_cast<i32>(node);
        next.ending[rank] = -limits<double>::infinity();
        next.staying[rank] = scores[k];
      }
    }
    count = taken;
    __syncthreads();
    const Beam was = beam;
    beam = next;
    next = was;
  }
  __syncthreads();
  if (threadIdx.x == 0) found[search.top * s.rows + row] = count < search.top ? -1 - count : 0;
  if (count < search.top) return;
  for (i64 path = threadIdx.x; path < search.top; path += blockDim.x) {
    ends[path * s.rows + row] = beam.nodes[path];
    found[path * s.rows + row] = labels_of(tree.parents, tree.classes, beam.nodes[path], search.merge, 0, [](i32, i64) {});
    store(log_probability + row * search.top + path, log_sum(beam.ending[path], beam.staying[path]));
  }
}
// The labels of one path of each row, a thread per row.
GD_KERNEL(ctc_beam_labels)
(const i32* ends, const i64* counts, const i32* parents, const i32* classes, i64* indices, i64* values, i64* shape, i64 widest, i64 rows,
 Search search) {
  GD_GRID_LOOP(i64, row, rows) {
    i64 begin = 0;
    for (i64 other = 0; other < row; ++other) begin += counts[other];
    if (row == 0) {
      shape[0] = rows;
      shape[1] = widest;
    }
    const i64 tree = row * search.nodes;
    labels_of(parents + tree, classes + tree, ends[row], search.merge, counts[row], [&](i32 label, i64 place) {
      indices[2 * (begin + place)] = row;
      indices[2 * (begin + place) + 1] = place;
      values[begin + place] = label;
    });
  }
}
