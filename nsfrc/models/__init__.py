"""What is known of a detector without running it: the header of a model file, class names, files of detections."""
