//! A container scheduler that speaks Diego's protocols: BBS, auctioneer, rep and executors.
